import{a as o,b as r}from"./chunk-EDGF4YRG.js";import"./chunk-YGMU7ZFH.js";export{r as ColourCard,o as ColourChoice};
