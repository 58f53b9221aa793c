// Package picture draws a plot with its title, notes and legend, as SVG or PNG of 800 by 500 pixels.
//
// Input: a Sheet around a plot of gonum/plot. Output: the picture. The colours stay apart for those who see few of
// them, and the fonts come with the program, so that the same sheet gives the same picture everywhere. It is pure but
// for the writer.
package picture
