"""Shares one menu among the pages of a folder, since the theme would compute the same menu again for every page."""

import re
from typing import Any

FEWEST = 5  # pages of a folder that share a menu; in smaller folders, the theme computes each menu
OPTIONS = {"collapse": False, "titles_only": True, "maxdepth": -1, "includehidden": True}  # those of the theme
TAG = re.compile(r'</?(?:ul|li)\b[^>]*>|<a class="reference internal" href="([^"]*)"')
CHECKBOX = ' class="toctree-checkbox"'

MENUS: dict[str, str] = {}  # by folder: the menu of a page that is not in it


def mark_current(menu: str, link: str) -> str:
    """Returns the menu of the page to which `link` leads, as the theme writes it.

    The entry of the page and the entries above it are marked as current, and their parts of the menu are open.

    Args:
        menu: the menu without a current page.
        link: the link in the menu.
    """
    above: list[re.Match[str]] = []  # the open lists and entries
    for tag in TAG.finditer(menu):
        if tag[0].startswith("</"):
            above.pop()
        elif tag[0].startswith("<a"):
            if tag[1] == link:
                break
        else:
            above.append(tag)
    else:
        return menu
    edits = [(tag.start(), tag.end(), '<a class="current reference internal" href="#"')]
    for part in above:
        if part[0] == "<ul>":
            edits.append((*part.span(), '<ul class="current">'))
            continue
        current = re.sub(r"(toctree-l\d+)", r"\1 current", part[0])
        edits.append((*part.span(), current.replace('">', ' current-page">') if part is above[-1] else current))
        if "has-children" in part[0]:
            checkbox = menu.index(CHECKBOX, part.end())
            edits.append((checkbox, checkbox, ' checked=""'))
    for start, end, text in sorted(edits, reverse=True):
        menu = menu[:start] + text + menu[end:]
    return menu


def write_menus(app: Any, builder: Any) -> None:
    """Computes the menu of each folder with several pages. Sphinx calls this before it writes pages."""
    from furo.navigation import get_navigation_tree

    folders = [_folder(page) for page in builder.env.found_docs]
    for folder in {folder for folder in folders if folders.count(folder) >= FEWEST}:
        MENUS[folder] = get_navigation_tree(builder._get_local_toctree(f"{folder}no such page", **OPTIONS))


def _folder(page: str) -> str:
    return page[: page.rfind("/") + 1]


def _skip_menu(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Keeps the theme from computing a menu."""
    if _folder(page) in MENUS:
        context["toctree"] = lambda **options: ""


def _add_menu(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Adds the shared menu where the theme's menu would be."""
    if _folder(page) in MENUS:
        name = app.builder.get_target_uri(page).rpartition("/")[2]
        context["furo_navigation_tree"] = mark_current(MENUS[_folder(page)], name)


def setup(app: Any) -> dict[str, bool]:
    """Connects the menus to Sphinx: one function before the theme's, which has priority 500, and one after it."""
    app.connect("write-started", write_menus)
    app.connect("html-page-context", _skip_menu, priority=400)
    app.connect("html-page-context", _add_menu, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
