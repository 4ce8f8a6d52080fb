import{md as r}from"./chunk-YYCZNCAK.js";r();
