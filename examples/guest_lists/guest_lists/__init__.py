"""Tasks on guest lists: a worked example of plug-ins."""
