"""The docs are true where a test can tell: links lead somewhere, the README's tree is the tree, no page is orphaned."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)")
FENCED = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)  # quoted code has brackets of its own


def links_of(page):
    return LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))


def test_every_relative_link_leads_to_a_file():
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in PAGES
        for target in links_of(page)
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_page_of_docs_is_reached_from_the_readme_or_the_index():
    linked = {
        (page.parent / target).resolve()
        for page in (ROOT / "README.md", ROOT / "docs" / "README.md")
        for target in links_of(page)
        if "://" not in target
    }
    orphans = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")) if p.resolve() not in linked]
    assert [name for name in orphans if name != "docs/README.md"] == []


def test_the_tree_in_the_readme_names_every_room_and_nothing_else():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = readme[readme.rindex("src/deadheat/") :]
    named = set(re.findall(r"^\s+(\w+)/ ", tree, flags=re.MULTILINE)) | set(
        re.findall(r"^\s+(\w+)\.py ", tree, flags=re.MULTILINE)
    )
    source = ROOT / "src" / "deadheat"
    there = {p.name for p in source.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    there |= {p.stem for p in source.glob("*.py")}
    assert {name for name in named if (source / name).exists() or (source / f"{name}.py").exists()} == there
