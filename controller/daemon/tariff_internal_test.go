package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"pitchpipe/controller/config"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// billing is a scheduler that says what it bills in the partition paid.
type billing struct {
	believing
	asked int
	whole bool
}

func (b *billing) Billing(_ context.Context, partition string) (driver.Billing, error) {
	b.asked++
	if partition != "paid" {
		return driver.Billing{}, driver.ErrNotFound
	}
	return driver.Billing{Core: 3, GiB: 1, Whole: b.whole}, nil
}

func TestWhatAJobIsCharged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "site.yaml")
	text := "partition:\n  euros: {prices: {core_hour: 2, unit: EUR}, enforce_model: true}\n  paid: {prices: from-slurm}\n  lost: {prices: from-slurm}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	site, err := config.LoadSite(path)
	if err != nil {
		t.Fatal(err)
	}
	own := tuning.Settings{tuning.Cores: tuning.Number(4)}
	for _, c := range []struct {
		name, partition string
		biller          *billing
		whole           bool
		want            tuning.Tariff
	}{
		{"core-hours where the site wrote no prices", "other", nil, false, tuning.DefaultTariff()},
		{"the site's prices", "euros", nil, false, tuning.Tariff{CoreHour: 2, Unit: "EUR", Modelled: true}},
		{"what the scheduler bills", "paid", &billing{}, false, tuning.Tariff{CoreHour: 3, GiBHour: 1, Unit: "billing-hours"}},
		{"core-hours where the scheduler does not say", "lost", &billing{}, false, tuning.DefaultTariff()},
		{"core-hours where no scheduler could", "paid", nil, false, tuning.DefaultTariff()},
		{"a whole node that the job asks for, by the owner's size", "euros", nil, true, tuning.Tariff{CoreHour: 2, Unit: "EUR", Hour: 8, Modelled: true}},
		{"a whole node that the partition gives", "paid", &billing{whole: true}, false, tuning.Tariff{CoreHour: 3, GiBHour: 1, Unit: "billing-hours", Hour: 12}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &services{driver: believing{accounts: true}, site: site, log: slog.New(slog.DiscardHandler)}
			if c.biller != nil {
				c.biller.accounts = true
				r.driver = c.biller
			}
			job := driver.Job{ID: "1", Partition: c.partition, Resources: driver.Resources{Whole: c.whole}}
			for range 2 {
				if got := r.tariff(t.Context(), job, own); got != c.want {
					t.Errorf("%+v, want %+v", got, c.want)
				}
			}
			if c.partition == "paid" && c.biller != nil && c.biller.asked != 1 {
				t.Errorf("the scheduler was asked %d times for two jobs of a partition, want once", c.biller.asked)
			}
		})
	}
}
