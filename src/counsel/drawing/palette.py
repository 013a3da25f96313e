"""The colours of every picture and page."""

ADVICE, SILENCE, HARM, GOLD = "#0B7A75", "#8A8178", "#C8553D", "#E3A72F"
INK, PAPER, LINES, WHITE = "#1F2430", "#FBFAF7", "#E4DFD6", "#FFFFFF"
BLUE, ROAD, STONES = "#3C5A99", "#EFEBE3", "#B9B1A5"

DARK_GOLD = "#9A6B0F"  # gold for lines and words: dark enough to be read on white
SILENCE_TEXT = "#6F6760"  # grey for words about silence: dark enough to be read on white
LIGHT = {
    "advice": ADVICE,
    "silence": SILENCE_TEXT,
    "harm": "#B3452E",
    "star": GOLD,
    "gold": "#8A5F0C",
    "ink": INK,
    "soft": "#5B6170",
    "paper": PAPER,
    "card": WHITE,
    "line": LINES,
    "wall": "#4A4E59",
    "code": "#F1EEE8",
}
"""Colours of pages by meaning; silence, harm and gold are darker than in pictures, to be read."""

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
"""Colours of pages in the dark theme, as on the pages of the service."""
