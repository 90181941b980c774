"""The documentation site: `make docs` builds it from these pages, the docstrings and the gallery.

Nothing is fetched while it is built or read: equations are MathML, fonts and scripts lie beside the
pages. Pages of docs/api and docs/auto_gallery are generated.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))
sys.path.insert(0, str(DOCS.parent / "src"))
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from public_names import write_api  # noqa: E402

from gazediffusion import __version__  # noqa: E402

project = "gazediffusion"
author = "The gazediffusion developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "mathml",
    "source_links",
]
exclude_patterns = ["_build", "_ext", "_templates", "gallery", "api/backreferences"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # functions in the gallery's settings are not cached
highlight_language = "text"  # of indented blocks, which are commands

# Pages in Markdown
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

# The reference: every public name, as the package exports it
write_api(DOCS / "api")
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
viewcode_follow_imported_members = True

# The gallery: `-D plot_gallery=0` leaves out the execution
sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": r"plot_\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "min_reported_time": 60,
    "remove_config_comments": True,
    "reset_modules": ("gallery_style.reset",),
    "reset_modules_order": "both",
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "doc_module": ("gazediffusion",),
    "backreferences_dir": "api/backreferences",
    "thumbnail_size": (480, 320),
}

# The theme
html_theme = "pydata_sphinx_theme"
html_title = "gazediffusion"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "gazediffusion"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": True,
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "getting_started": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
