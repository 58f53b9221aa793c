// Package card has the words for what GPUs show: the lines that the helper program
// writes and the exporter reads. In comes a line; out comes a Reading or one error. It
// never fills in what a line does not tell.
package card
