// Package benchmind runs every evaluation of the tuner's mind over recorded runs and
// writes what they found into one report with plots.
//
// Input: the program pitchpipe, the folder of recorded runs and one to write into. Output:
// report.md, an SVG for each plot, and the JSON of each evaluation. The aims are next to
// what was reached. The package reads nothing of an evaluation but the documented keys
// of its JSON, decides nothing about its results, and never changes the data.
package benchmind
