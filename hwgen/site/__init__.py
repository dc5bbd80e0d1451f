"""One HTML page of all reports: it opens without a network, and everything on it comes from their JSON.

============  ====================================================================
module        what it holds
============  ====================================================================
sources       the reports of a folder
markup        HTML elements that escape what stands in them
charts        plots as Vega-Lite, compiled for the page
conditions    what the figures of a report hold for
overheads     headline, overheads, and what is inside of a core
explorations  many ways to build two designs
power         situations
formats       the table of formats, cost against error
workloads     time and energy of models, on a grid of bandwidths and numbers of cores
page          the page
============  ====================================================================
"""
