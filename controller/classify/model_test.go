package classify_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitchpipe/controller/classify"
)

func TestModelsThatNoFitMadeAreRefused(t *testing.T) {
	t.Parallel()
	m := fit(t, sample("a", "dense", at(3)), sample("b", "sort", at(9)))
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	stratum := func() string {
		s := string(text)
		from := strings.Index(s, "\"strata\": [") + len("\"strata\": [")
		return s[from:strings.LastIndex(s, "]")]
	}()
	for name, replace := range map[string][2]string{
		"a second model behind it":     {"\n}\n", "\n}\n{}"},
		"no JSON":                      {"{", "["},
		"an unknown key":               {`"issued": 2`, `"issued": 2, "pickle": 1`},
		"another version":              {`"version": 1`, `"version": 2`},
		"certainty":                    {`"confidence": 0.95`, `"confidence": 1`},
		"no prior":                     {`"prior_runs": 4`, `"prior_runs": 0`},
		"no generation":                {`"generation": 1`, `"generation": 0`},
		"fewer ids than classes":       {`"issued": 2`, `"issued": 1`},
		"a class twice":                {`"id": "c2"`, `"id": "c1"`},
		"a class of another name":      {`"id": "c2"`, `"id": "two"`},
		"a class with leading zeros":   {`"id": "c2"`, `"id": "c02"`},
		"a stratum twice":              {stratum, stratum + "," + stratum},
		"an axis without a unit":       {`"scale": 0.9`, `"scale": 0`},
		"an axis twice":                {`"feature": "minor_faults"`, `"feature": "read_chars"`},
		"a class without runs":         {"\"runs\": [\n            \"a\"\n          ]", `"runs": []`},
		"a centre on an unknown axis":  {`"feature": "minor_faults"`, `"feature": "major_faults"`},
		"a class that spreads nowhere": {`"spread": 1`, `"spread": -1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(string(text), replace[0], replace[1], 1)
			if changed == string(text) {
				t.Fatalf("%q is not in\n%s", replace[0], text)
			}
			if got, err := classify.Decode([]byte(changed)); !errors.Is(err, classify.ErrModel) || got != nil {
				t.Errorf("got %v, %v; want ErrModel", got, err)
			}
		})
	}
}

func TestAModelWithANumberThatIsNoneCannotBeStored(t *testing.T) {
	t.Parallel()
	m := classify.Model{Confidence: math.NaN()}
	if b, err := m.Encode(); err == nil {
		t.Errorf("stored as %s", b)
	}
}

func FuzzDecode(f *testing.F) {
	m, err := classify.Fit([]classify.Sample{sample("a", "dense", at(3)), sample("b", "sort", at(9))})
	if err != nil {
		f.Fatal(err)
	}
	text, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":1,"generation":1,"confidence":0.5,"prior_runs":1,"strata":[]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := classify.Decode(b)
		if err != nil {
			return
		}
		m.Classify(at(3))
		again, err := m.Encode()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		back, err := classify.Decode(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, again)
		}
		if diff := cmp.Diff(m, back, cmpopts.IgnoreUnexported(classify.Stratum{})); diff != "" {
			t.Fatalf("read and written:\n%s", diff)
		}
	})
}
