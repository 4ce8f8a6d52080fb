import{Wb as r}from"./chunk-NR6TEYRL.js";r();
