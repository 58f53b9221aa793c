package doctor

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Print writes findings as a table, and below it what mends them. Findings of one kind that
// have the same state for the same reason share a line.
func Print(w io.Writer, findings []Finding) error {
	var page bytes.Buffer
	table := tabwriter.NewWriter(&page, 0, 4, 2, ' ', 0)
	for rest := findings; len(rest) > 0; {
		name, n := alike(rest)
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", rest[0].State, name, rest[0].Why) // Flush reports it
		rest = rest[n:]
	}
	if err := table.Flush(); err != nil {
		return err
	}
	said := []string{""}
	for _, f := range findings {
		if slices.Contains(said, f.Mend) {
			continue
		}
		if len(said) == 1 {
			fmt.Fprintln(&page, "\nWhat mends it:")
		}
		said = append(said, f.Mend)
		var names []string
		same := slices.DeleteFunc(slices.Clone(findings), func(o Finding) bool { return o.Mend != f.Mend })
		for len(same) > 0 {
			name, n := alike(same)
			names, same = append(names, name), same[n:]
		}
		fmt.Fprintf(&page, "  %s\n      %s\n", strings.Join(names, ", "), f.Mend)
	}
	_, err := page.WriteTo(w)
	return err
}

// alike is how many of the first findings share a line, and the name of that.
func alike(findings []Finding) (name string, n int) {
	first := findings[0]
	kind, _, ok := strings.Cut(first.Name, "/")
	for n = 1; ok && n < len(findings); n++ {
		f := findings[n]
		if other, _, _ := strings.Cut(f.Name, "/"); other != kind || f.State != first.State || f.Why != first.Why {
			break
		}
	}
	if n > 2 {
		return fmt.Sprintf("%s and %d more of %s", first.Name, n-1, kind), n
	}
	return first.Name, 1
}
