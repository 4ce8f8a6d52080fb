import{a as o}from"./chunk-CZLSKE6O.js";import"./chunk-VD43SUVE.js";import"./chunk-SCKUP2UZ.js";import"./chunk-AADEWNYY.js";export{o as Preferences};
