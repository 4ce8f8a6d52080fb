import{a as o,b as r}from"./chunk-BMIT737T.js";import"./chunk-NRXRA7CT.js";export{r as ColourCard,o as ColourChoice};
