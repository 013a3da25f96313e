"""The documentation's settings: ``make docs`` builds the site into ``docs/_build/html``."""

import sys
from pathlib import Path

import counsel

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "Counsel"
author = "the Counsel developers"
version = release = counsel.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "source_links",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "offline",
    "mathml",
    "reference_pages",
]
exclude_patterns = ["_build", "gallery/GALLERY_HEADER.rst"]
nitpicky = False

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}

copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "_gallery",
    "filename_pattern": r"/\d\d_",
    "ignore_pattern": r"/_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 10_000,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "image_srcset": ["2x"],
    "thumbnail_size": (720, 360),
    "reset_modules": ("gallery_style.reset",),
    "write_computation_times": False,
}

html_theme = "furo"
html_title = "Counsel"
html_static_path = ["_static"]
html_css_files = ["counsel.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0B7A75",
        "color-brand-content": "#0B7A75",
        "color-background-primary": "#FBFAF7",
        "color-background-secondary": "#F4F2EC",
        "color-foreground-primary": "#1F2430",
    },
    "dark_css_variables": {
        "color-brand-primary": "#4CC2BB",
        "color-brand-content": "#4CC2BB",
    },
}
