package gpu

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"pitchpipe/exporter/collector/gpu/card"
)

// DCGM reads a dcgm-exporter on this machine. It shows no processes, so no job is charged. Its
// counter of energy is left out: a page changes every 30 s, so that the counter stands still and
// then jumps, while power goes on as it was.
type DCGM struct {
	URL      string        // of its page, such as http://127.0.0.1:9400/metrics
	Interval time.Duration // between readings, default 1 s, at most 2 s
}

// Name is "dcgm-exporter".
func (DCGM) Name() string { return "dcgm-exporter" }

const maxPage = 16 << 20

// Run asks for the page until one answer fails.
func (d DCGM) Run(ctx context.Context, emit func(card.Reading)) error {
	client := &http.Client{Timeout: 5 * time.Second}
	every := time.NewTicker(pace(d.Interval))
	defer every.Stop()
	for {
		r, err := d.ask(ctx, client)
		if err != nil {
			return fmt.Errorf("dcgm-exporter: %w", err)
		}
		emit(r)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-every.C:
		}
	}
}

func (d DCGM) ask(ctx context.Context, client *http.Client) (r card.Reading, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return r, err
	}
	answer, err := client.Do(req)
	if err != nil {
		return r, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return r, fmt.Errorf("%s answers %s", d.URL, answer.Status)
	}
	return parseDCGM(io.LimitReader(answer.Body, maxPage))
}

// parseDCGM reads the families of a page that are about whole GPUs.
func parseDCGM(page io.Reader) (card.Reading, error) {
	families, err := familiesOf(page)
	if err != nil {
		return card.Reading{}, fmt.Errorf("%w: %w", card.ErrInvalid, err)
	}
	devices := map[string]*card.Device{}
	for name, set := range map[string]func(*card.Device, float64){
		"DCGM_FI_DEV_POWER_USAGE": func(d *card.Device, v float64) { d.Watts = &v },
		"DCGM_FI_DEV_GPU_UTIL":    func(d *card.Device, v float64) { d.Busy = new(min(v/100, 1)) },
		"DCGM_FI_DEV_FB_USED":     func(d *card.Device, v float64) { d.MemoryUsed = bytesOf(new(v * mebi)) },
	} {
		for _, m := range families[name].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			id := labels["UUID"]
			// One of the three is there; the others are 0.
			v := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
			if id == "" || labels["GPU_I_ID"] != "" || !(v >= 0 && v < 1e18) {
				continue
			}
			if devices[id] == nil {
				index, _ := strconv.Atoi(labels["gpu"])
				devices[id] = &card.Device{UUID: id, Index: index, Missing: map[string]string{"joules": "dcgm-exporter shows them every 30 s", "processes": "dcgm-exporter does not report them"}}
			}
			devices[id].Name = cmp.Or(devices[id].Name, labels["modelName"])
			set(devices[id], v)
		}
	}
	if len(devices) == 0 {
		return card.Reading{}, fmt.Errorf("%w: no GPU in the page", card.ErrInvalid)
	}
	var r card.Reading
	for _, d := range devices {
		r.Devices = append(r.Devices, *d)
	}
	slices.SortFunc(r.Devices, func(a, b card.Device) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID)) })
	return r, nil
}

// familiesOf parses a page. The parser panics on some pages that begin with a brace, and what
// listens on that port is not ours.
func familiesOf(page io.Reader) (families map[string]*dto.MetricFamily, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser panicked: %v", p)
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(page)
}
