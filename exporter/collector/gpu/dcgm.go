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

// DCGM reads a dcgm-exporter on this machine. It shows no processes, so that no job is
// charged.
type DCGM struct {
	URL      string        // of its page, such as http://127.0.0.1:9400/metrics
	Interval time.Duration // between readings, default 1 s, at most 2 s
	Client   *http.Client  // default: one that gives up after 5 s
}

// Name is "dcgm-exporter".
func (DCGM) Name() string { return "dcgm-exporter" }

// Run asks for the page until one answer fails.
func (d DCGM) Run(ctx context.Context, emit func(card.Reading)) error {
	interval := pace(d.Interval)
	client := d.Client
	if client == nil {
		client = &http.Client{Timeout: 5 * time.Second}
	}
	every := time.NewTicker(interval)
	defer every.Stop()
	for {
		r, err := d.ask(ctx, client)
		if err != nil {
			return err
		}
		emit(r)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-every.C:
		}
	}
}

// maxPage bounds what is read of the page.
const maxPage = 16 << 20

func (d DCGM) ask(ctx context.Context, client *http.Client) (card.Reading, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return card.Reading{}, fmt.Errorf("dcgm-exporter: %w", err)
	}
	answer, err := client.Do(req)
	if err != nil {
		return card.Reading{}, fmt.Errorf("dcgm-exporter: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return card.Reading{}, fmt.Errorf("dcgm-exporter: %s answers %s", d.URL, answer.Status)
	}
	return parseDCGM(io.LimitReader(answer.Body, maxPage), time.Now())
}

// parseDCGM reads the families of a page that are about whole GPUs.
func parseDCGM(page io.Reader, at time.Time) (card.Reading, error) {
	families, err := familiesOf(page)
	if err != nil {
		return card.Reading{}, fmt.Errorf("%w: page of dcgm-exporter: %w", card.ErrInvalid, err)
	}
	devices := map[string]*card.Device{}
	each := func(name string, set func(*card.Device, float64)) {
		for _, m := range families[name].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			id := labels["UUID"]
			if v := valueOf(m); id != "" && labels["GPU_I_ID"] == "" && v >= 0 && v < 1e18 {
				if devices[id] == nil {
					index, _ := strconv.Atoi(labels["gpu"])
					devices[id] = &card.Device{UUID: id, Index: index, Name: labels["modelName"]}
				}
				set(devices[id], v)
			}
		}
	}
	each("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", func(d *card.Device, v float64) { v /= 1000; d.Joules = &v })
	each("DCGM_FI_DEV_POWER_USAGE", func(d *card.Device, v float64) { d.Watts = &v })
	each("DCGM_FI_DEV_GPU_UTIL", func(d *card.Device, v float64) { v = min(v/100, 1); d.Busy = &v })
	each("DCGM_FI_DEV_FB_USED", func(d *card.Device, v float64) { v *= mebi; d.MemoryUsed = bytesOf(&v) })
	if len(devices) == 0 {
		return card.Reading{}, fmt.Errorf("%w: page of dcgm-exporter: no GPU in it", card.ErrInvalid)
	}
	r := card.Reading{At: at}
	for _, d := range devices {
		d.Missing = map[string]string{"processes": "dcgm-exporter does not tell them"}
		r.Devices = append(r.Devices, *d)
	}
	slices.SortFunc(r.Devices, func(a, b card.Device) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID)) })
	return r, nil
}

// familiesOf parses a page. The parser panics on some that begin with a brace, and what
// listens on that port is not ours.
func familiesOf(page io.Reader) (families map[string]*dto.MetricFamily, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its parser gave up: %v", p)
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(page)
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetUntyped() != nil:
		return m.GetUntyped().GetValue()
	}
	return -1
}
