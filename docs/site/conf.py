"""How Sphinx builds the site; `scripts/build_docs.py` collects its pages and calls it."""

import surehold

project = "Surehold"
author = "the Surehold contributors"
release = version = surehold.__version__
extensions = ["myst_parser"]
myst_enable_extensions = ["html_image"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
nitpicky = True

html_theme = "furo"
html_title = "Surehold"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = html_show_sphinx = html_copy_source = html_use_index = False
html_permalinks_icon = "#"
html_theme_options = {
    "light_css_variables": {
        "font-stack": "system-ui, sans-serif",
        "color-brand-primary": "#0b5c4c",
        "color-brand-content": "#0b5c4c",
    },
    "dark_css_variables": {"color-brand-primary": "#63d1b8", "color-brand-content": "#63d1b8"},
}
