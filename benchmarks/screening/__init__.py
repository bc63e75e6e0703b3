"""What screening costs, whether Harbor agrees with it, and how many wrong answers it catches.

    python -m benchmarks.screening --help

Dated figures, not gates: run them on an idle machine. `speed` and `agreement` need Harbor 0.26
(for example in a virtual environment of its own, with Python 3.12), Docker and the image of
`docker/sandbox`; `soundness` needs neither.
"""
