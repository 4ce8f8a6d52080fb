import{md as r}from"./chunk-NBMTKBVB.js";r();
