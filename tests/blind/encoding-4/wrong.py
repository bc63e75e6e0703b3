text = open("pewter.txt", encoding="utf-8-sig", newline="").read()
text = text.encode("latin-1").decode("utf-8")
parts = [line.strip(" \t") for line in text.split("\n")]
open("pewter.txt", "w", encoding="utf-8", newline="").write("\n".join(parts))
