"""A table as text for a paper, a pull request or a page: Markdown, LaTeX or HTML."""

import html
from collections.abc import Sequence

from deadheat.reports.formats import printable

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": r"$-$", "–": "--", "±": r"$\pm$", "α": r"$\alpha$",
    "τ": r"$\tau$", "×": r"$\times$", "→": r"$\to$",
}  # fmt: skip


def written(
    format_name: str, sentence: str, headings: Sequence[str], rows: Sequence[Sequence[str]], totals: Sequence[str] = ()
) -> str:
    """The sentence and its table as `markdown`, `latex` or `html`.

    Example:
        >>> print(written("markdown", "Not called.", ["seed", "A−B"], [["1", "+2.0"]]))
        Not called.
        <BLANKLINE>
        | seed | A−B |
        |:--|--:|
        | 1 | +2.0 |
    """
    everything = [*rows, totals] if totals else list(rows)
    return _WRITERS[format_name](printable(sentence), headings, everything)


def _markdown(sentence: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(printable(cell).replace("|", "\\|") for cell in cells) + " |"

    rule = "|:--|" + "--:|" * (len(headings) - 1)
    return "\n".join([sentence, "", line(headings), rule, *map(line, rows)])


def _latex(sentence: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def escaped(text: str) -> str:
        return "".join(_LATEX.get(letter, letter) for letter in printable(text))

    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(escaped, cells)) + r" \\"

    return "\n".join(
        [
            escaped(sentence),
            "",
            rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}",
            r"\hline",
            line(headings),
            r"\hline",
            *map(line, rows),
            r"\hline",
            r"\end{tabular}",
        ]
    )


def _html(sentence: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(printable(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    head = line(headings, "th")
    return f"<p>{html.escape(sentence)}</p>\n<table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"


_WRITERS = {"markdown": _markdown, "latex": _latex, "html": _html}
