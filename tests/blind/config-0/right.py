import configparser
cp = configparser.ConfigParser(interpolation=None)
cp.optionxform = str
cp.read("garnet.ini")
settings = [(s, k, v) for s in cp.sections() for k, v in cp.items(s)]
settings = [("cabin", "mint", v) if (s, k) == ("cabin", "lava") else (s, k, v) for s, k, v in settings]
settings = settings[1:]
with open("alder.env", "w") as out:
    for s, k, v in settings:
        out.write(f"{s}_{k}".upper() + "=" + v + "\n")
