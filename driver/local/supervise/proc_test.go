package supervise

import (
	"slices"
	"strconv"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const line = `77 (a (b) c) S 1 70 71 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 9000000 42 18446744073709551615 1`
	p, err := parseStat(77, line)
	if err != nil {
		t.Fatal(err)
	}
	if p.pid != 77 || p.parent != 1 || p.session != 71 || p.ended || p.start != 12345 || p.rss <= 42 {
		t.Errorf("process %+v, want parent 1, session 71, running, start 12345 and 42 pages", p)
	}
	for _, text := range []string{"", "77 (x", "77 (x) S 1", "77 (x) S a b c d e f g h i j k l m n o p q r s t u v"} {
		if p, err := parseStat(77, text); err == nil {
			t.Errorf("parseStat(%q) = %+v, want an error", text, p)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add(`77 (a (b) c) S 1 70 71 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 9000000 42 18446744073709551615 1`)
	f.Add(") ")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := parseStat(1, text); err == nil && p.pid != 1 {
			t.Errorf("parseStat(%q) = %+v", text, p)
		}
	})
}

func TestDescendantsAreFoundAtAnyDepth(t *testing.T) {
	t.Parallel()
	table := map[int]process{}
	for pid, parent := range map[int]int{1: 0, 2: 1, 3: 2, 4: 3, 5: 1, 6: 5} {
		table[pid] = process{pid: pid, parent: parent}
	}
	var got []string
	for _, p := range descendants(table, 2) {
		got = append(got, strconv.Itoa(p.pid))
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("descendants of 2: %v, want 3 and 4", got)
	}
}
