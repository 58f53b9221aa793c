// Package picture draws a plot with its title, notes and legend, as SVG or PNG of 800 by 500 pixels.
//
// Input: a Sheet around a plot of gonum/plot. Output: the picture. Colour-blind readers can tell the colours
// apart, and the fonts come with the program, so that the same sheet gives the same picture everywhere. It is pure
// apart from the writer.
package picture
