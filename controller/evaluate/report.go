package evaluate

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// Report is what an evaluation found: rows of one kind and what they sum up to.
type Report[R, S any] struct {
	Command string   `json:"command"` // the words behind `pitchpipe`, such as "evaluate tuner"
	Data    []string `json:"data"`    // the files it was measured on, as they were named
	Rows    []R      `json:"rows"`
	Summary S        `json:"summary"`
}

// Progress is told how many of how many parts are done, and what the next one is.
type Progress func(done, total int, what string)

// Words lines up words of any kind, such as the methods that a flag takes.
func Words[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// Quiet tells nobody.
func Quiet(int, int, string) {}

// Columns lines up rows of cells under their heads, two spaces apart.
func Columns(heads []string, rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range append([][]string{heads}, rows...) {
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // to memory
	}
	_ = w.Flush()
	return b.String()
}

// Number prints a figure with a fixed number of digits, and what is missing or not finite
// as "-".
func Number(v *float64, digits int) string {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, *v)
}
