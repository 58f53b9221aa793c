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
		"loss=nan quality=+Inf\ttotal=10 epoch=3\n": {Epoch: 3, Diverged: true, Total: 10},
		"loss=1e999 epoch=3":                        {Epoch: 3, Diverged: true},
		"saved":                                     {Saved: true},
		" saved\n":                                  {Saved: true},
		`{"saved":true}`:                            {Saved: true},
		`{"begins":true}`:                           {Begins: true},
		`{"saved":true,"epoch":0,"time":"0001-01-01T00:00:00Z"}`: {Saved: true}, // as the client writes it
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
		"saved epoch=3", "saved loss=0.5", "saved total=3", "saved=1", "saving", `{"saved":true,"epoch":1}`, `{"saved":true,"quality":1}`, `{"saved":false}`,
		`{"saved":true,"epoch":-1}`, `{"begins":true,"epoch":1}`, `{"begins":true,"saved":true}`, `{"saved":1}`,
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
	f.Add([]byte("saved"))
	f.Add([]byte(`{"saved":true,"epoch":0}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := api.ParseReport(body)
		if err != nil {
			if !errors.Is(err, api.ErrInvalid) {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		if (r.Saved != r.Begins) != (r.Epoch == 0) || r.Epoch < 0 || r.Total < 0 || r.Saved && (r.Total > 0 || r.Loss != nil || r.Quality != nil) {
			t.Errorf("%q: %+v", body, r)
		}
		// What the client sends for it is read as the same.
		sent, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		again, err := api.ParseReport(sent)
		if err != nil {
			t.Errorf("%q, sent as %q: %v", body, sent, err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("%q, sent as %q (-want +got):\n%s", body, sent, diff)
		}
	})
}
