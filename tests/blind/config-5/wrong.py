import configparser
cfg = configparser.ConfigParser()
cfg.optionxform = str
cfg.read("horizon.ini")
cfg["poplar"]["dipper"] = cfg["poplar"]["canoe"]
cfg.remove_option("poplar", "canoe")
cfg["dahlia"]["moss"] = str(cfg.getint("dahlia", "moss") * 1000)
with open("horizon.ini", "w") as fh:
    cfg.write(fh)
with open("feather.env", "w") as fh:
    for s in reversed(cfg.sections()):
        for k, v in cfg[s].items():
            fh.write("{}_{}={}\n".format(s, k, v.strip()).replace(s + "_" + k, (s + "_" + k).upper(), 1))
