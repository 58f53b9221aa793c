package tuning

// Tariff is what a job is charged by the hour for what it asks for, and for the joules that it
// uses.
type Tariff struct {
	CoreHour float64 `json:"core_hour,omitempty"`
	GiBHour  float64 `json:"gib_hour,omitempty"` // of memory
	GPUHour  float64 `json:"gpu_hour,omitempty"`
	KWh      float64 `json:"kwh,omitempty"`
	Unit     string  `json:"unit"` // of the prices, such as EUR

	// Hour is the price of an hour of a job that holds the same whatever it asks for, such
	// as whole nodes, in place of the prices above; 0 = it holds what it asks for.
	Hour float64 `json:"hour,omitempty"`
	// Dearest charges for that one of cores, memory and GPUs which costs most, not for
	// their sum, as PriorityFlags=MAX_TRES of Slurm does.
	Dearest bool `json:"dearest,omitempty"`
	// Billed stands for what the scheduler says that it bills.
	Billed bool `json:"billed,omitempty"`
	// Modelled charges for modelled joules too.
	Modelled bool `json:"modelled,omitempty"`
}

// DefaultTariff is that of a site without prices: a core-hour costs 1.
func DefaultTariff() Tariff { return Tariff{CoreHour: 1, Unit: "core-hours"} }

// Rate is the price of an hour under settings s, energy left out.
func (t Tariff) Rate(s Settings) float64 {
	if t.Hour > 0 {
		return t.Hour
	}
	cores, memory, gpus := t.CoreHour*s[Cores].Float(), t.GiBHour*s[Memory].Float()/(1<<30), t.GPUHour*s[GPUs].Float()
	if t.Dearest {
		return max(cores, memory, gpus)
	}
	return cores + memory + gpus
}

// Price is what so many seconds and joules cost; NaN where energy has a price and joules are NaN.
func (t Tariff) Price(seconds, joules float64, s Settings) float64 {
	price := t.Rate(s) * seconds / 3600
	if t.KWh > 0 {
		price += t.KWh * joules / 3.6e6
	}
	return price
}

// Charges reports whether joules of this source have a price.
func (t Tariff) Charges(source string) bool { return t.KWh > 0 && (source != Modelled || t.Modelled) }

func (t Tariff) isFree() bool {
	return t.CoreHour == 0 && t.GiBHour == 0 && t.GPUHour == 0
}

// WithoutEnergy is the tariff with energy free.
func (t Tariff) WithoutEnergy() Tariff {
	t.KWh = 0
	return t
}

// Fixed is the tariff of a job that holds as much as under s, whatever it asks for.
func (t Tariff) Fixed(s Settings) Tariff {
	t.Hour = t.Rate(s)
	return t
}
