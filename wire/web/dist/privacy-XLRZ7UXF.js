import{a as o}from"./chunk-GXO7FT6G.js";import"./chunk-VI2H3CNK.js";import"./chunk-JU67BVEI.js";import"./chunk-Y5UUDIUK.js";export{o as Privacy};
