package hostabi

import "unsafe"

// dictionary gives each text of a block a number, in the order of their first use; the empty text has 0.
type dictionary struct {
	texts  []string
	byText map[string]uint32 // nil while there are few texts
	recent []recentText      // recentTexts of them; nil where rows are few
	last   recentText        // the newest: one row after the other mostly has the same
}

// recentText is a text that was looked up, known by where its bytes are in memory. Rows mostly share the bytes
// of a node's or zone's name, so this spares hashing them. It is valid for the block being written only: the
// memory may hold other bytes later.
type recentText struct {
	data   *byte
	length int
	index  uint32
}

const (
	recentTexts = 1 << 10
	fewTexts    = 16 // up to here a search is as fast as a map, and needs none
)

// expectMany makes the dictionary fast for many rows.
func (d *dictionary) expectMany() {
	if d.recent == nil {
		d.recent = make([]recentText, recentTexts)
	}
}

// reset forgets all texts and keeps the memory.
func (d *dictionary) reset() {
	d.texts = append(d.texts[:0], "")
	clear(d.byText)
	clear(d.recent)
	d.last = recentText{}
}

// index returns the number of text.
func (d *dictionary) index(text string) uint32 {
	if text == "" {
		return 0
	}
	data := unsafe.StringData(text)
	if d.last.data != data || d.last.length != len(text) {
		d.last = recentText{data, len(text), d.find(text, data)}
	}
	return d.last.index
}

// find returns the number of a text that is not the last one, and whose bytes are at data.
func (d *dictionary) find(text string, data *byte) uint32 {
	if d.recent == nil {
		return d.lookUp(text)
	}
	slot := &d.recent[uint64(uintptr(unsafe.Pointer(data)))*0x9e3779b97f4a7c15>>54] // the top 10 bits
	if slot.data != data || slot.length != len(text) {
		*slot = recentText{data, len(text), d.lookUp(text)}
	}
	return slot.index
}

// lookUp returns the number of text by its bytes.
func (d *dictionary) lookUp(text string) uint32 {
	if len(d.texts) > fewTexts {
		return d.lookUpMany(text)
	}
	for i, t := range d.texts {
		if t == text {
			return uint32(i)
		}
	}
	return d.add(text)
}

// lookUpMany is lookUp by the map, which it fills first if it is not in use yet.
func (d *dictionary) lookUpMany(text string) uint32 {
	if d.byText == nil {
		d.byText = make(map[string]uint32)
	}
	if len(d.byText) == 0 {
		for i, t := range d.texts {
			d.byText[t] = uint32(i)
		}
	}
	if i, ok := d.byText[text]; ok {
		return i
	}
	i := d.add(text)
	d.byText[text] = i
	return i
}

// add gives text the next number.
func (d *dictionary) add(text string) uint32 {
	d.texts = append(d.texts, text)
	return uint32(len(d.texts) - 1)
}
