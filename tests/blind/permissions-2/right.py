import os
P = [l.split() for l in open("lantern.txt") if l.strip()]
def mode_for(path):
    for pat, m in P:
        if pat.endswith("/") and path.startswith(pat) or pat.startswith(".") and path.endswith(pat):
            return int(m, 8)
    return 0      # adds nothing
for top, dirs, files in os.walk("bucket"):
    for f in files:
        full = os.path.join(top, f)
        now = os.stat(full).st_mode & 0o777
        want = now | mode_for(full)
        if want != now:
            os.chmod(full, want)
