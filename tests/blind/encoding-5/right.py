with open("coast.txt", "rb") as f:
    content = f.read()
content = content.decode("iso8859-15").rstrip("\0")
content = "".join("\n" if c == "\r" else c for c in content)
with open("coast.txt", "wb") as f:
    f.write(content.encode())
