"""The colours of every picture and page."""

ADVICE, SILENCE, HARM = "#0B7A75", "#8A8178", "#C8553D"
GOLD, INK, PAPER, STONES, LINES = "#E3A72F", "#1F2430", "#FBFAF7", "#B9B1A5", "#E4DFD6"

DRIVER = "#9A6B0F"
"""Gold, dark enough to be read."""

LIGHT = {
    "advice": ADVICE,
    "silence": "#6F6760",
    "harm": "#B3452E",
    "star": GOLD,
    "gold": "#8A5F0C",
    "ink": INK,
    "soft": "#5B6170",
    "paper": PAPER,
    "card": "#FFFFFF",
    "line": LINES,
    "wall": "#4A4E59",
    "code": "#F1EEE8",
}
"""Colours of pages by what they stand for; silence, harm and gold are dark enough to be read."""

DARK = {
    "advice": "#4FC3BB",
    "silence": "#B0A79D",
    "harm": "#F08A70",
    "star": "#F0BD55",
    "gold": "#E0B25C",
    "ink": "#ECEAE5",
    "soft": "#A9ADB8",
    "paper": "#171A21",
    "card": "#1F232C",
    "line": "#383D49",
    "wall": "#8B90A0",
    "code": "#262B35",
}
"""The same in the dark, as the pages of the service have them."""
