package reconcile

import (
	"strings"
	"testing"

	"pitchpipe/controller/tuning"
)

// ran makes epochs of kinds of machines, one a letter; - is a kind that nobody knows.
// Those in capitals ran under the owner's own settings.
func ran(kinds string) []tuning.Epoch {
	var out []tuning.Epoch
	for i, k := range kinds {
		e := tuning.Epoch{Number: i + 1, Machine: strings.Trim(strings.ToLower(string(k)), "-"), Settings: tuning.Settings{tuning.Cores: tuning.Number(2)}}
		if strings.ToUpper(string(k)) == string(k) {
			e.Settings = tuning.Settings{tuning.Cores: tuning.Number(1)}
		}
		out = append(out, e)
	}
	return out
}

func TestEpochsAreAlikeOnMachinesOfTheLatestKind(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, ran, alike string
		elsewhere        bool
	}{
		{"none", "", "", false},
		{"of one kind", "AAaa", "1234", false},
		{"of no known kind", "--", "12", false},
		{"of a kind that is known since later", "-Aa", "123", false},
		{"of another kind than the owner's own", "AAbb", "34", true},
		{"of the first kind again", "AAbbaa", "1256", false},
		{"of a kind on which his own were measured, too", "AABBbb", "3456", false},
		{"of another kind, where his own were never measured", "aabb", "34", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			epochs := ran(tc.ran)
			var got strings.Builder
			for _, e := range alike(epochs) {
				got.WriteByte('0' + byte(e.Number))
			}
			p := reconciliation{rec: &Record{Course: Course{Epochs: epochs}, Request: Request{Own: tuning.Settings{tuning.Cores: tuning.Number(1)}}}}
			if got.String() != tc.alike || p.elsewhere() != tc.elsewhere || len(epochs) != len(tc.ran) {
				t.Errorf("alike are %q, elsewhere %v; want %q, %v", got.String(), p.elsewhere(), tc.alike, tc.elsewhere)
			}
		})
	}
}
