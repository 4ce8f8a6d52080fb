import{md as r}from"./chunk-6UBML4XB.js";r();
