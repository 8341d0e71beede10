"""The dashboard: `roofline app`, or `streamlit run app.py` in a checkout.

frame.py is the picture frame (page settings, the shared selection in the sidebar, navigation); each page_*.py is one
page, named by its path in the address and imported when it is drawn.  A page computes nothing: it calls the functions
of `roofline`, and shows their answers with the kit.

A page module has

    PARAMETERS          names of its own parameters in the address (those of the sidebar are the frame's)
    page(selection)     draws the page from a `roofline.dashboard.selection.Selection`

The kit, in controls.py (each `.show(where)` draws the widget, checks its parameter in the address, returns its value):

    choice(name, options, default)   several(name, options, default)   slider(name, low, high, default, step)
    steps(name, options, default)    switch(name, default)             text(name, default, longest)
    refuse(name, value, expected, default)   a note about a parameter that a page reads itself
    help_text(quantity)                      meaning, unit and letter from the glossary

in live.py, for a slider whose chart is redrawn while it is dragged (live.js; formulas by roofline.answers.live):

    live_slider(control, chart) -> value     chart: of live_charts.py

and in kit.py:

    chart(spec, key, alt) -> selection       Vega-Lite as a dict; needs a selection parameter, such as ZOOM
    table(answer)  explain(answer)  notes(answer)
    downloads(name, answer, figure)          PDF, SVG, PNG (figure: a function that makes it), CSV, JSON, LaTeX
    reproduce(name, python, cli)             with call_lines(function, *args, named=..., **options) -> (python, cli)
    views(*titles)  folded(title, name, content)   parts of a page that are made when they are opened
    footer(roof, omits)
    error(problem)  guarded()                errors as text; a trace goes to the server's log only

visits.py lets every page find its controls as it was left; known.py tells what the names of the sidebar stand for, the
user's files (uploads.py) among them.
"""
