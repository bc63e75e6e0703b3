"""Tools on one text file's bytes: charset, byte-order mark, accents, line ends, blanks."""

from functools import partial

from flywheel.tools import choice
from schemas.tool import Parameter, ToolSpec

_tool = partial(ToolSpec, program="retext")
_FILE = Parameter(name="file", description="a file of the workspace")

ENCODING_TOOLS = (
    _tool(
        name="open-text",
        description="load a file's bytes and show how they begin",
        parameters=(_FILE,),
    ),
    _tool(
        name="to-utf-8",
        description="change the bytes to UTF-8",
        parameters=(
            choice("from", "the encoding that they are in", "cp1252", "iso-8859-15", "utf-16"),
        ),
    ),
    _tool(
        name="undo-double-encoding",
        description="undo that UTF-8 was taken for another encoding and made UTF-8 again",
        parameters=(choice("taken-for", "that encoding", "latin-1", "cp1252"),),
    ),
    _tool(name="drop-byte-order-mark", description="remove the mark at the start"),
    _tool(name="drop-nul-padding", description="remove NUL bytes at the end"),
    _tool(
        name="normalise",
        description="bring characters to a Unicode normal form",
        parameters=(choice("form", "the normal form", "NFC", "NFD", "NFKC", "NFKD"),),
    ),
    _tool(
        name="set-line-ends",
        description="end every line alike",
        parameters=(choice("to", "the line end", "lf", "crlf"),),
    ),
    _tool(
        name="strip-blanks",
        description="remove spaces and tabs from lines",
        parameters=(choice("at", "where", "start", "end", "both"),),
    ),
    _tool(name="save-text", description="save the bytes", parameters=(_FILE,)),
)
