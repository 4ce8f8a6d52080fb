import{a as o,b as r}from"./chunk-36X7IGT2.js";import"./chunk-NBMTKBVB.js";export{r as ColourCard,o as ColourChoice};
