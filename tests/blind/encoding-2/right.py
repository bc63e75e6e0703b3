import re
data = open("gravel.txt", "rb").read()
data = re.sub(rb"[ \t]+(?=\r|$)", b"", data)
data = re.sub(rb"\r(?!\n)", b"\r\n", data)
open("gravel.txt", "wb").write(data)
