import csv, json
only = lambda s: "".join(filter(str.isdigit, s or ""))
first = list(csv.DictReader(open("stork.csv")))
second = [{k.lower(): v for k, v in e.items()} for e in json.load(open("velvet.json")) if e["Moss"]]
phones = {only(e["lilac"]) for e in second if only(e["lilac"])}
result = [e for e in first if only(e["lilac"]) in phones and e["moss"]]
with open("onyx.csv", "w", newline="") as fh:
    w = csv.DictWriter(fh, fieldnames=list(first[0]), quoting=csv.QUOTE_NONNUMERIC)
    w.writeheader()
    for e in reversed(result):
        w.writerow(e)
