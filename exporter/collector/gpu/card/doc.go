// Package card is the format of the lines that the helper program writes and the exporter
// reads. In: a line. Output: a Reading or an error. The package never fills in what a line lacks.
package card
