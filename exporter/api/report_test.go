package api_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
)

func TestReportsAreJSONOrWords(t *testing.T) {
	t.Parallel()
	number := func(v float64) *float64 { return &v }
	for text, want := range map[string]api.Report{
		`{"epoch":3,"total":10,"loss":0.5}`:         {Epoch: 3, Total: 10, Loss: number(0.5)},
		"epoch=3":                                   {Epoch: 3},
		" epoch=3/10 loss=0.5 quality=1e-2\n":       {Epoch: 3, Total: 10, Loss: number(0.5), Quality: number(0.01)},
		"loss=nan quality=+Inf\ttotal=10 epoch=3\n": {Epoch: 3, Total: 10},
		"loss=1e999 epoch=3":                        {Epoch: 3},
	} {
		got, err := api.ParseReport([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{
		"", "{", "{}", `{"epoch":0}`, `{"epoch":1,"total":-1}`, "epoch", "epoch=0", "epoch=-1", "epoch=1.5", "epoch=3/", "epoch=3/x",
		"epoch=1 job=7", "loss=0.5", "epoch=1 loss=low", "epoch=99999999999",
	} {
		if got, err := api.ParseReport([]byte(text)); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%q: got %+v, %v; want %v", text, got, err, api.ErrInvalid)
		}
	}
}

func FuzzParseReport(f *testing.F) {
	f.Add([]byte(`{"epoch":3,"total":10,"loss":0.5}`))
	f.Add([]byte("epoch=3/10 loss=0.5 quality=nan"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := api.ParseReport(body)
		if err != nil {
			if !errors.Is(err, api.ErrInvalid) {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		if r.Epoch < 1 || r.Total < 0 {
			t.Errorf("%q: %+v", body, r)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	})
}
