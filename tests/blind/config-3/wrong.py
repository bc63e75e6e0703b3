import configparser
order = ["marble.ini", "needle.ini"]
c = configparser.ConfigParser(interpolation=None)
c.read(order)
with open("mallard.env", "w", newline="") as f:
    for section in c:
        for key in c[section]:
            print(section.upper() + "_" + key.upper(), c[section][key], sep="=", end="\r\n", file=f)
