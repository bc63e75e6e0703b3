from configparser import RawConfigParser

def load(name):
    p = RawConfigParser()
    p.optionxform = lambda o: o
    with open(name) as fh:
        p.read_file(fh)
    return {s: dict(p[s]) for s in p.sections()}

base, extra = load("onyx.ini"), load("canoe.ini")
for s in extra:
    base.setdefault(s, {}).update(extra[s])
if "turnip" in base["hammer"]:
    base["hammer"]["thicket"] = base["hammer"].pop("turnip")
lines = sorted("%s_%s=%s" % (s.upper(), k.upper(), v) for s, kv in base.items() for k, v in kv.items())
open("plume.env", "w").write("\n".join(lines))
