import unicodedata
with open("flint.txt", encoding="utf-8", newline="") as f:
    s = f.read()
s = unicodedata.normalize("NFKC", s.replace("\r", "\n"))
with open("flint.txt", "w", encoding="utf-8", newline="") as f:
    f.write(s)
