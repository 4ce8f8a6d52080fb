import{a as o,b as r}from"./chunk-ZJBOSI44.js";import"./chunk-NRQBLXPL.js";export{r as ColourCard,o as ColourChoice};
