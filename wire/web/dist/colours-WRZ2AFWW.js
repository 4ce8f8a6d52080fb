import{a as o,b as r}from"./chunk-RQ6T4CNK.js";import"./chunk-WVZKNENU.js";export{r as ColourCard,o as ColourChoice};
