raw = open("crater.txt", "rb").read()
while raw.endswith(b"\x00"):
    raw = raw[:-1]
if raw.startswith(b"\xef\xbb\xbf"):
    raw = raw[3:]
out = raw.replace(b"\r", b"\n")
with open("crater.txt", "wb") as f:
    f.write(out)
