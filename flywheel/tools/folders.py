"""Tools on folders: rearranging a tree, repairing a manifest, giving permissions by a policy."""

from functools import partial

from flywheel.tools import choice
from schemas.tool import Parameter, ToolSpec

_FOLDER = Parameter(name="folder", description="a folder of the workspace")
_FILE = Parameter(name="file", description="a file of the workspace")
_PATH = Parameter(name="path", description="the path of a file, as the manifest has it")

_tree = partial(ToolSpec, program="filetree")
TREE_TOOLS = (
    _tree(
        name="copy-tree",
        description="copy a folder with all below it to a new folder",
        parameters=(_FOLDER, Parameter(name="to", description="the new folder")),
    ),
    _tree(
        name="drop-hidden",
        description="remove files whose names begin with a dot",
        parameters=(_FOLDER,),
    ),
    _tree(
        name="keep-marked",
        description="remove files that do not have this line",
        parameters=(
            _FOLDER,
            Parameter(name="line", description="the whole line"),
            choice("where", "which lines are looked at", "first", "any"),
        ),
    ),
    _tree(
        name="drop-copies",
        description="keep one of the files with the same content",
        parameters=(
            _FOLDER,
            choice(
                "keep", "the one with the shortest name, or the first path", "shortest", "first"
            ),
        ),
    ),
    _tree(
        name="lower-names",
        description="change capitals in file names to small letters",
        parameters=(_FOLDER,),
    ),
    _tree(
        name="flatten",
        description="move the files of all subfolders directly into a folder",
        parameters=(
            _FOLDER,
            choice("taken", "what to do with a later file of the same name", "drop", "number"),
        ),
    ),
    _tree(
        name="group-files",
        description="move the files directly in a folder into subfolders",
        parameters=(
            _FOLDER,
            choice("by", "what subfolders are named after", "extension", "word", "month"),
        ),
    ),
)

_manifest = partial(ToolSpec, program="manifest")
MANIFEST_TOOLS = (
    _manifest(
        name="read-manifest",
        description="load a manifest and compare it with a folder",
        parameters=(_FILE, _FOLDER),
    ),
    _manifest(
        name="cut-prefix",
        description="shorten paths that begin with a prefix",
        parameters=(
            Parameter(name="prefix", description="the beginning"),
            choice("keep", "the rest of the path, or the file's name alone", "path", "name"),
        ),
    ),
    _manifest(
        name="drop-repeats",
        description="keep one line for each path",
        parameters=(choice("keep", "which line stays", "first", "last"),),
    ),
    _manifest(name="lower-hashes", description="change capitals in hashes to small letters"),
    _manifest(
        name="add-entry", description="add a line for a file at the end", parameters=(_PATH,)
    ),
    _manifest(name="drop-entry", description="remove the lines of a path", parameters=(_PATH,)),
    _manifest(
        name="update-entry",
        description="put a file's hash and size on its lines",
        parameters=(_PATH,),
    ),
    _manifest(name="sort-entries", description="sort the lines by path"),
    _manifest(
        name="write-manifest",
        description="save the manifest",
        parameters=(_FILE, choice("ends", "what ends a line", "kept", "lf", "crlf")),
    ),
)

_modes = partial(ToolSpec, program="modes")
MODES_TOOLS = (
    _modes(
        name="read-policy",
        description="load a file of lines with a pattern and a mode",
        parameters=(_FILE,),
    ),
    _modes(
        name="plan-modes",
        description="plan for each file of a folder the mode of the line that fits it",
        parameters=(
            _FOLDER,
            choice("several", "which line counts where several fit", "none", "first", "last"),
        ),
    ),
    _modes(
        name="plan-rest",
        description="plan a mode for the files that no line fits",
        parameters=(choice("mode", "600 or 644", "private", "shared"),),
    ),
    _modes(
        name="run-scripts",
        description="let planned files that begin with #! be executed by all who may read them",
    ),
    _modes(
        name="limit-changes",
        description="let the plan take rights away only, or give rights only",
        parameters=(choice("to", "what it may do", "taking", "giving"),),
    ),
    _modes(
        name="narrow-plan",
        description="take files out of the plan by a list of paths",
        parameters=(_FILE, choice("spare", "which files are left alone", "listed", "unlisted")),
    ),
    _modes(name="apply-plan", description="give the planned modes to the files"),
)
