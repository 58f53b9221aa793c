// Package card has the words for what GPUs show: the lines that the helper program writes and
// the exporter reads. The input is a line; the output is a Reading or an error. The package
// never fills in what a line does not say.
package card
