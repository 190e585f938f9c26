"""Configuration of Sphinx for the site: `make docs`."""

import functools
import inspect
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from site_pages import docstrings, names, pages

import jaxdp

project = "jaxdp"
author = "The jaxdp authors"
copyright = "The jaxdp authors. Apache-2.0"
version = release = jaxdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "site_pages.mathml",
    "site_pages.navigation",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["examples", "site_pages", "requirements.lock"]
nitpicky = False
smartquotes = False  # quotes are parts of values
default_role = "py:obj"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # `notebooks/make.py run` has executed them
nb_merge_streams = True
copybutton_exclude = ".linenos, .gp, .go"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
maximum_signature_line_length = 90
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "jaxdp"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["filters.js"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
# The pages stand alone: no font, script or picture comes from elsewhere.

CLASSES: dict[str, list[names.Name]] = {}  # by their last names, which several may share, as `Space`
for each in names.everything():
    if inspect.isclass(each.value):
        CLASSES.setdefault(each.path.rpartition(".")[2], []).append(each)
KNOWN = re.compile(rf"(?<![\w.'\"])({'|'.join(sorted(CLASSES, key=len, reverse=True))})(?![\w'\"])")


def _docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Converts sections of docstrings to headings and definitions."""
    lines[:] = docstrings.to_rst("\n".join(lines))


def _signature(app: Any, what: str, name: str, value: Any, options: Any, shown: str, result: str) -> Any:
    """Returns the arguments as the source writes them, with links to types that the reference describes."""
    found = docstrings.signature(value)
    if found is None:
        return None
    arguments, arrow, returned = found.rpartition(") -> ")
    if not arrow:
        return _link_types(found, value), None
    return _link_types(f"{arguments})", value), _link_types(returned, value)


def _link_types(text: str, value: Any) -> str:
    """Replaces types by their full paths, which become links. The source's module decides between types of one name."""
    module = sys.modules.get(getattr(inspect.unwrap(value), "__module__", ""))

    def path(match: re.Match[str]) -> str:
        found = CLASSES[match[1]]
        if len(found) > 1:
            found = [each for each in found if each.value is getattr(module, match[1], None)]
        return found[0].path if found else match[1]

    return KNOWN.sub(path, text)


def _skip(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Skips fields of tuples, which are described under Attributes, and methods of all tuples."""
    kind = type(value).__name__
    if kind in ("_tuplegetter", "member_descriptor") or name in ("_asdict", "_replace", "_make"):
        return True
    return None


def _write(app: Any) -> None:
    if not (pages.API / "algorithms.rst").exists():
        raise RuntimeError("docs/reference/api lacks generated pages: run `python docs/site_pages/pages.py`")
    pages.write_gallery()
    found = pages.copy_notebooks(pages.EXECUTED, HERE / "tutorials")
    if len(found) != len(list((HERE.parent / "notebooks").glob("[0-9][0-9]_*.py"))):
        raise RuntimeError("results/notebooks lacks executed notebooks: run `python notebooks/make.py run --changed`")


def setup(app: Any) -> None:
    """Connects the functions above to Sphinx, which calls this."""
    from sphinx.search.en import SearchEnglish

    SearchEnglish.stem = functools.cache(SearchEnglish.stem)  # the same words occur on most pages
    app.connect("builder-inited", _write)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skip)
