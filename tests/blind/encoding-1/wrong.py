from pathlib import Path
p = Path("dahlia.txt")
b = p.read_bytes().rstrip(b"\0")
p.write_bytes(b.decode("latin-1").encode("utf-8").replace(b"\r", b"\r\n"))
